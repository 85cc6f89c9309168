"""CSV and Parquet files, as read and written by the command line."""
