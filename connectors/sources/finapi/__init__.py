"""Banks through finAPI: Access v2 for the data, Web Form 2.0 for the person's sign-in and for updates."""
