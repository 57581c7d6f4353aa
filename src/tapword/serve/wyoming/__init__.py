"""Wake-word service for Home Assistant: taught words over the Wyoming protocol.

Here and below, `wyoming` is the package of that name, which speaks the protocol.
"""
