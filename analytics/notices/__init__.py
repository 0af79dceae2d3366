"""What deserves that a person is told at once: functions from frames to what is found."""
