"""Drop-in replacements for the noise of other libraries: change the import, keep the pipeline.

``docs/migration.md`` lists each call before and after, and how the guarantee changes.
"""
