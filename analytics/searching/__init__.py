"""What a search finds, what that adds up to by groups, and with which days it is compared."""
