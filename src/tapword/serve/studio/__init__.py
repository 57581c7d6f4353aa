"""The studio: teach, watch and correct a model in the browser."""
