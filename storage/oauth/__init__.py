"""What the authorization server remembers: one module per noun.

Moments go in aware or in UTC and come out aware. Every secret arrives here as its hash. "Exactly one winner" is
always `UPDATE ... WHERE used_at IS NULL RETURNING`: the row comes back to one caller only.
"""
