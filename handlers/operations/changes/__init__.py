"""The feeds of changes by which clients keep copies, and the cursors that clients hand back."""
