"""The data of the authorization server: one module per noun.

Times go in with a zone or in UTC and come out with a zone. Every secret arrives here as its hash. "Exactly one winner"
is always `UPDATE ... WHERE used_at IS NULL RETURNING`: the row comes back to one caller only.
"""
