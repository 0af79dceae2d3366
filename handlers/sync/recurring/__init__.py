"""What is told of recurring payments without being asked."""
