"""Questions of the source notes that no release asks: rejection sampling and remapping."""
