# The shipped release, against the definition of discrete Laplace noise. `make readers` compares
# files of every kind with the library.
library(geomdp)

refusal <- function(expression) tryCatch(expression, error = conditionMessage)
path <- system.file("extdata", "admissions.csv", package = "geomdp")
rows <- read_geomdp(path)
stopifnot(
  identical(names(rows), c("Dept", "Gender", "Admit", "count", "lower", "upper")),
  nrow(rows) == 24,
  all(rows$lower == pmax(rows$count - 6, 0)),
  all(rows$upper == rows$count + 6)
)

# The least a with P(|noise| > a) <= alpha, by adding up probabilities.
values <- -200:200
q <- exp(-0.5)
noise <- (1 - q) / (1 + q) * q^abs(values)
error <- function(masses, alpha) {
  middle <- (length(masses) + 1) / 2
  beyond <- function(a) sum(masses[abs(seq_along(masses) - middle) > a])
  a <- 0
  while (beyond(a) > alpha) a <- a + 1
  a
}
for (level in c(0.5, 0.9, 0.95, 0.999)) {
  at_level <- read_geomdp(path, level)
  stopifnot(all(at_level$upper - at_level$count == error(noise, 1 - level)))
}
of_sum <- noise
for (cells in 2:12) {
  of_sum <- convolve(of_sum, rev(noise), type = "open")
  found <- sum_geomdp(rows, seq_len(cells))
  stopifnot(
    found$estimate == sum(rows$count[seq_len(cells)]),
    found$upper - found$estimate == error(of_sum, 0.05)
  )
}

# Rows that were left out or sorted are still those of the file; their attributes were not.
backwards <- rows[nrow(rows):1, ]
stopifnot(
  identical(sum_geomdp(backwards, backwards$Dept == "A"), sum_geomdp(rows, rows$Dept == "A")),
  identical(sum_geomdp(rows[rows$Dept == "F", ], TRUE), sum_geomdp(rows, 21:24))
)
# NA chooses nothing.
some <- rows$Dept == "A"
some[24] <- NA
stopifnot(identical(sum_geomdp(rows, some), sum_geomdp(rows, 1:4)))
stopifnot(
  refusal(sum_geomdp(rows, c(1, 1))) == "choose each row once",
  refusal(sum_geomdp(rows, rows$Dept == "Z")) == "choose at least one row",
  refusal(sum_geomdp(rows, 25)) == "a chosen row is not in the file",
  grepl("these are not the rows of a file", refusal(sum_geomdp(as.data.frame(as.list(rows)), 1))),
  grepl("too near 1", refusal(sum_geomdp(rows, 1:4, level = 1 - 1e-12)))
)

# Edited rows are refused, and rows without a description.
folder <- tempfile()
dir.create(folder)
copy <- file.path(folder, "admissions.csv")
file.copy(path, copy)
stopifnot(grepl("which was published beside", refusal(read_geomdp(copy))))
file.copy(paste0(path, ".json"), folder)
stopifnot(identical(read_geomdp(copy)$count, rows$count))
cat("A,Male,Admitted,1\n", file = copy, append = TRUE)
stopifnot(grepl("are not those of its description", refusal(read_geomdp(copy))))

stopifnot(
  identical(unique(labels_geomdp(rows, "Dept")), LETTERS[1:6]),
  "privacy loss (epsilon) for one individual: 0.5" %in% capture.output(summary(rows)),
  "each individual counts in at most 1 cell, at most once in each" %in% capture.output(summary(rows))
)
grDevices::pdf(NULL)
plot(rows)
