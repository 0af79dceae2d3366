"""Ways in besides the password: the household's provider; and how somebody without a password shows who they are."""
