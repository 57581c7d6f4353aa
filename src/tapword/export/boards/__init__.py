"""Models as packages for boards, and the transfer of what boards learn."""
