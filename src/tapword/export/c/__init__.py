"""A model as C that goes on learning."""
