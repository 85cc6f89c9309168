"""The noise of other libraries, by their own calls: change the import and keep the pipeline.

``docs/migration.md`` has each call before and after, and what changes in the guarantee.
"""
