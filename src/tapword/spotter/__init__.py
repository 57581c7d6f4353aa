"""Backbones, poolings and a learner together: teach words, recognise them, keep them in a file."""
