"""What a person says about their recurring payments."""
