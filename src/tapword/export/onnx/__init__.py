"""A model as one ONNX file."""
