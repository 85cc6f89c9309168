"""The mathematics of tables: least squares on trees and products, streams, thresholds."""
