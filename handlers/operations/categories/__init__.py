"""Operations on categories: the finer ones, a user's own, and targets."""
