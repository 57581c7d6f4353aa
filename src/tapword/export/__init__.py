"""Taught models for other programs: one ONNX file, or a C header that keeps learning."""
