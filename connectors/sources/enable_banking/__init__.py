"""European banks through Enable Banking, by an application that the operator has at this licensed provider."""
