"""The feeds by which clients keep copies, and the cursors that they hand back."""
