"""Operations on recurring payments: list them with their charges, confirm or dismiss one, add one."""
