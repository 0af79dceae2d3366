"""European banks through Enable Banking, by an application of the operator at this licensed provider."""
