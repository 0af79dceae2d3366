"""What people have decided about their recurring payments."""
