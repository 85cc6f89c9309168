"""What the mechanism and publishing both stand on: parameters, ids, files, notebooks."""
