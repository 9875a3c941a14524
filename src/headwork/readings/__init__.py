"""What a step can mean. Each reading is one table from operation to rule and one public function."""
