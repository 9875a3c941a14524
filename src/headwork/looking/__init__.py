"""The heads of a real model on a real text: what each reads, and why."""
