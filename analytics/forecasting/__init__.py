"""What an account will hold on the days to come, and how wrong that was before."""
