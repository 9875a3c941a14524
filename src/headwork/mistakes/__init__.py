"""The mistakes: the catalogue, what each predicts, which of them fits an answer, and sheets that tell them apart."""
