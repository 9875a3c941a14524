"""Attention over a sequence whose rows lie on several ranks of torch.distributed."""
