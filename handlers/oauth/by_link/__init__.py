"""The pages to which links lead that open something by themselves, without a sign-in."""
