"""From exact counts to a release: prepare, spend, draw, save."""
