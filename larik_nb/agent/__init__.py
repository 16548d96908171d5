"""Conversations and what acts in them."""
