"""Multi-head attention, worked: by hand, in the open, at full speed."""
