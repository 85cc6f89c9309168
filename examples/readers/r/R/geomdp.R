# Reads tables that geomdp published, with base R and jsonlite. docs/format.md describes the files.
# This one works by itself too: source("geomdp.R").

# More than the error of the sampled distribution of a cell.
.lost <- 2^-50

.fraction <- function(text) {
  parts <- as.numeric(strsplit(text, "/", fixed = TRUE)[[1]])
  if (length(parts) == 2) parts[1] / parts[2] else parts
}

# P(Z >= d) of discrete Laplace noise.
.tail <- function(d, rate) {
  q <- exp(-rate)
  ifelse(d > 0, q^pmax(d, 0) / (1 + q), 1 - q^pmax(1 - d, 0) / (1 + q))
}

# The least a with P(|Z| > a) <= alpha.
.reach <- function(rate, alpha) {
  pmax(0, ceiling(-log(alpha * (1 + exp(-rate)) / 2) / rate - 1))
}

# The first integer from `low` to `high` for which `holds`, which then holds for all after it.
.first <- function(low, high, holds) {
  while (any(low < high)) {
    middle <- floor((low + high) / 2)
    yes <- holds(middle)
    high <- ifelse(yes, middle, high)
    low <- ifelse(yes, low, middle + 1)
  }
  low
}

# Intervals given that a noisy count reached the threshold.
.groups <- function(counts, rate, at_least, alpha) {
  reached <- function(x) .tail(at_least - x, rate)
  far <- 60 / rate + 2 * (counts - at_least) + 10
  lower <- .first(counts - far, counts, function(x) {
    .tail(counts - x, rate) >= alpha / 2 * reached(x)
  })
  above <- .first(counts, counts + far, function(x) {
    reached(x) - .tail(counts + 1 - x, rate) < alpha / 2 * reached(x)
  })
  list(lower = pmax(lower, 0), upper = pmax(above - 1, 0))
}

# The threshold of each row: of two, the first is that of rows whose words are all common.
.thresholds <- function(facts, cells) {
  at_least <- unlist(facts$at_least)
  common <- rep(TRUE, nrow(cells))
  for (place in seq_along(facts$axes)) {
    axis <- facts$axes[[place]]
    listed <- axis$levels$words$common
    column <- cells[[cumsum(.widths(facts))[place]]]
    if (length(listed)) common <- common & column %in% unlist(c(listed, axis$other))
  }
  if (length(at_least) == 1) at_least else ifelse(common, at_least[1], at_least[2])
}

# How many columns of the file show each of the axes: those of combinations, or one.
.widths <- function(facts) {
  shown <- function(axis) if (is.null(axis$nodes)) max(1, length(axis$columns)) else 1
  vapply(facts$axes, shown, 1)
}

# What stands in some columns together, as .text has it of a combination.
.joined <- function(cells, types) {
  if (length(cells) == 1) return(cells[[1]])
  same <- function(cell, type) if (type == "number") vapply(as.numeric(cell), .text, "") else cell
  do.call(paste, c(unname(Map(same, cells, types)), sep = "\001"))
}

# The least that a true count, or a true sum of values, may be.
.least <- function(facts) {
  if (!is.null(facts$values) && as.numeric(facts$values[[1]]) < 0) -Inf else 0
}

# The depth of each node of a column, by its text in the file.
.depths <- function(axis, cells) {
  if (!is.null(names(axis$levels))) { # a rule, of which nobody can list the levels
    labels <- unique(cells)
    depths <- rep(0, length(labels))
  } else if (is.null(axis$nodes)) {
    labels <- c(axis$margin, axis$levels, axis$other)
    depths <- c(rep(0, length(axis$margin)), rep(length(axis$margin), length(labels)))
    depths <- depths[seq_along(labels)]
  } else {
    labels <- axis$nodes
    depths <- integer(length(labels))
    for (node in seq_along(labels)) {
      parent <- axis$parents[[node]] + 1
      depths[node] <- if (parent == 0) 0 else depths[parent] + 1
    }
  }
  list(labels = vapply(labels, .text, ""), depths = depths)
}

# A level as the file has it.
.text <- function(level) {
  if (is.null(level)) return("")
  if (is.list(level) && is.null(names(level))) { # a combination: no level has this character
    return(paste(vapply(level, .text, ""), collapse = "\001"))
  }
  if (is.list(level)) return(level[[1]])
  if (is.logical(level)) return(tolower(as.character(level)))
  if (is.numeric(level)) return(format(level, digits = 17, scientific = FALSE))
  level
}

.typed <- function(cells, type) {
  cells[cells == "" & type != "string"] <- NA
  switch(type,
    integer = , number = as.numeric(cells),
    boolean = cells == "true",
    date = as.Date(cells),
    ifelse(cells == "", NA, cells)
  )
}

read_geomdp <- function(path, level = 0.95) {
  stopifnot(length(level) == 1, level > 0, level < 1)
  beside <- paste0(path, ".json")
  if (!file.exists(beside)) stop("get ", beside, " too, which was published beside ", path)
  text <- paste(readLines(beside, encoding = "UTF-8", warn = FALSE), collapse = "\n")
  stated <- jsonlite::fromJSON(text, simplifyVector = FALSE, bigint_as_char = TRUE)
  facts <- stated$geomdp
  if (!identical(facts$format, "geomdp-release-1")) {
    stop(path, " has a format that this reader does not know")
  }
  same <- file.size(path) == stated$bytes
  if (exists("sha256sum", asNamespace("tools"))) { # from R 4.5 on
    same <- same && paste0("sha256:", getFromNamespace("sha256sum", "tools")(path)) == stated$hash
  }
  if (!same) stop("the rows of ", path, " are not those of its description")
  fields <- stated$schema$fields
  cells <- read.csv(path,
    header = FALSE, skip = 0, colClasses = "character", na.strings = character(0),
    fileEncoding = "UTF-8", check.names = FALSE, strip.white = FALSE, blank.lines.skip = FALSE
  )
  # The apostrophe before parts of texts that spreadsheets would run, with any separator; \u... are
  # = + - @ in full width, and a byte order mark.
  run <- "(^|[,;|\t\r\n])'(?=['\"]*[=+@\t\r\n\uff1d\uff0b\uff0d\uff20\ufeff-])"
  plain <- function(column) gsub(run, "\\1", column, perl = TRUE)
  cells <- as.data.frame(lapply(cells, plain))
  names <- vapply(fields, function(field) field$name, "")
  if (!identical(unname(unlist(cells[1, ])), names)) {
    stop(path, " has other columns than its description")
  }
  cells <- cells[-1, , drop = FALSE]
  types <- vapply(fields, function(field) field$type, "")
  rows <- as.data.frame(Map(.typed, cells, types), stringsAsFactors = FALSE)
  rownames(rows) <- NULL
  colnames(rows) <- names
  attr(rows, "geomdp") <- facts
  attr(rows, "level") <- level
  class(rows) <- c("geomdp", "data.frame")
  if (!is.null(facts$top)) return(rows)
  # The rate of each row's noise: that of the depths of its levels. A sum has those of its parts.
  key <- rep("", nrow(rows))
  widths <- .widths(facts)
  for (place in seq_along(facts$axes)) {
    columns <- cumsum(widths)[place] - widths[place] + seq_len(widths[place])
    own <- .joined(cells[columns], types[columns])
    known <- .depths(facts$axes[[place]], own)
    if (!is.null(facts$rest)) { # the last row
      known$labels <- c(known$labels, paste(
        vapply(facts$rest$labels[columns], .text, ""), collapse = "\001"
      ))
      known$depths <- c(known$depths, known$depths[1])
    }
    if (length(columns) == 1 && types[columns] == "number") {
      known$labels <- .same(known$labels, own)
    }
    at <- match(own, known$labels)
    if (anyNA(at)) stop(path, " has other rows than its description")
    key <- paste(key, known$depths[at])
  }
  depths <- function(mechanism) paste(c("", unlist(mechanism$depths)), collapse = " ")
  sources <- .sources(facts)
  keys <- vapply(sources[[1]]$mechanisms, depths, "")
  rates <- lapply(sources, function(source) {
    mechanisms <- source$mechanisms[match(key, vapply(source$mechanisms, depths, ""))]
    vapply(mechanisms, function(each) .fraction(each$rate), 0)
  })
  rate <- rates[[1]]
  # A noisy count below the least that a true one may be has the interval of that.
  counts <- pmax(rows[[length(names)]], .least(facts))
  alpha <- 1 - level - .lost
  # Before rounding, each count was between these.
  off <- .off(facts)
  low <- counts - off
  high <- counts + off
  if (is.null(facts$at_least) || !is.null(facts$chosen_by)) {
    reach <- .reach(rate, alpha)
    if (length(rates) > 1) {
      first <- match(unique(key), key)
      found <- vapply(first, function(row) .sum_reach(sapply(rates, `[`, row), 1, 1 - level), 0)
      reach <- found[match(key, unique(key))]
    }
    rows$lower <- pmax(low - reach, .least(facts))
    rows$upper <- high + reach
  } else {
    at_least <- .thresholds(facts, cells)
    rows$lower <- .groups(pmax(low, at_least), rate, at_least, alpha)$lower
    rows$upper <- .groups(pmax(high, at_least), rate, at_least, alpha)$upper
  }
  if (!is.null(facts$rest)) {
    # The sum of what was left out has noise of its own.
    last <- nrow(rows)
    rate[last] <- .fraction(facts$rest$rate)
    reach <- .reach(rate[last], alpha)
    rows[last, c("lower", "upper")] <- c(max(low[last] - reach, .least(facts)), high[last] + reach)
  }
  # A count at a bound may have been moved there, and a true count beyond it has its noise.
  bounds <- sources[[1]]$mechanisms[[1]]$bounds
  if (!is.null(bounds)) {
    reach <- .reach(rate, alpha)
    rows$lower[low - reach <= bounds[[1]]] <- .least(facts)
    rows$upper[high + reach >= bounds[[2]]] <- Inf
  }
  cell <- key == keys[length(keys)]
  cells <- if (any(cell)) sapply(rates, `[`, which(cell)[1])
  levels <- unclass(rows)[seq_len(sum(widths))]
  attr(rows, "read") <- list(levels = levels, cell = cell, rate = cells)
  rows
}

# What the description states. Rows that some other function made lack it.
.facts <- function(rows) {
  facts <- attr(rows, "geomdp")
  if (is.null(facts)) stop("these are not the rows of a file, as read_geomdp returns them")
  facts
}

# Where each row is among those of the file, by its levels: R keeps attributes as they are when rows
# are left out or sorted.
.places <- function(rows, levels) {
  codes <- function(table) {
    of_column <- function(column) match(table[[column]], unique(levels[[column]]))
    do.call(paste, c("", lapply(names(levels), of_column)))
  }
  match(codes(rows), codes(levels))
}

# The most that rounding moved a count: half a step, rounded down, and what was added up before.
.off <- function(facts) {
  step <- if (is.null(facts$rounded)) 0 else as.numeric(sub("middle of ", "", facts$rounded))
  sum(facts$moved) + step %/% 2
}

# The releases whose noise the counts have: one, or those of a sum.
.sources <- function(facts) if (length(facts$parts) == 0) list(facts) else facts$parts

# Numbers are the same however they are written.
.same <- function(labels, cells) {
  at <- match(as.numeric(cells), as.numeric(labels))
  ifelse(labels %in% cells, labels, cells[match(seq_along(labels), at)])
}

# The levels of a column as readers see them: the labels of codes that have one.
labels_geomdp <- function(rows, column) {
  axis <- .facts(rows)$axes[[column]]
  levels <- as.character(rows[[column]])
  if (length(axis$labels) == 0) return(levels)
  labels <- vapply(axis$labels, .text, "")
  found <- labels[match(levels, vapply(axis$nodes, .text, ""))]
  ifelse(is.na(found) | found == "", levels, found)
}

# The least t with P(|sum of the noise of n cells| > t) <= alpha, where each cell has a noise of each
# rate: the characteristic function of the noise is known, and a Fourier transform gives the
# distribution of the sum. Its errors are below 1e-9, by which alpha is made smaller.
.sum_reach <- function(rates, n, alpha) {
  q <- exp(-rates)
  size <- 2^ceiling(log2(48 * sqrt(2 * n * sum(q / (1 - q)^2)) + 80 / min(rates) + 64))
  if (size > 2^24) stop("this noise is too wide for this reader: use geomdp")
  half <- sin(pi * (seq_len(size) - 1) / size)
  logs <- Reduce(`+`, lapply(q, function(q) log1p(4 * q * half^2 / (1 - q)^2)))
  masses <- Re(fft(exp(-n * logs))) / size
  inside <- cumsum(c(masses[1], 2 * masses[2:(size / 2)]))
  reach <- which(inside >= 1 - (alpha - 1e-9 - n * length(rates) * .lost))[1] - 1
  if (is.na(reach)) stop("this level is too near 1 for this reader: use geomdp")
  reach
}

# The sum of some cells, with an interval.
sum_geomdp <- function(rows, which, level = attr(rows, "level")) {
  facts <- .facts(rows)
  stopifnot(length(level) == 1, level > 0, level < 1)
  if (!is.null(facts$top) || !is.null(facts$at_least)) {
    stop("these counts cannot be added: they were chosen by their noise")
  }
  if (!is.null(.sources(facts)[[1]]$mechanisms[[1]]$bounds)) {
    stop("counts with bounds cannot be added: errors have one sign")
  }
  stopifnot(!is.logical(which) || length(which) %in% c(1, nrow(rows)))
  chosen <- seq_len(nrow(rows))[which]
  # A comparison with a level that is missing is NA.
  if (is.logical(which)) chosen <- chosen[!is.na(chosen)]
  read <- attr(rows, "read")
  at <- .places(rows, read$levels)[chosen]
  if (length(at) == 0) stop("choose at least one row")
  if (anyNA(at)) stop("a chosen row is not in the file")
  if (anyDuplicated(at)) stop("choose each row once")
  if (!all(read$cell[at])) stop("rows that are sums themselves cannot be added: choose cells")
  counts <- rows[[length(read$levels) + 1]][chosen]
  n <- length(counts)
  reach <- .sum_reach(read$rate, n, 1 - level) + n * .off(facts)
  total <- sum(counts)
  least <- .least(facts)
  data.frame(
    estimate = total, lower = max(total - reach, least), upper = max(total, least) + reach
  )
}

# How much of an individual counts, in words.
.limits <- function(facts) {
  most <- function(n, noun) paste0("at most ", n, " ", noun, if (n != 1) "s")
  ends <- paste(unlist(facts$values), collapse = " to ")
  sums <- !is.null(facts$values)
  if (!is.null(facts$l1)) {
    return(paste0("with ", most(facts$l1, "record"), " in all", if (sums) ", and values from ", ends))
  }
  each <- if (sums) paste("with a sum from", ends) else "at most once"
  if (!sums && facts$linf != 1) each <- paste("at most", facts$linf, "times")
  paste0("in ", most(facts$l0, "cell"), ", ", each, " in each")
}

summary.geomdp <- function(object, ...) {
  facts <- .facts(object)
  title <- if (is.null(facts$about$title)) facts$label else facts$about$title
  cat("Noisy counts", if (!is.null(title)) paste0(": ", title), "\n", sep = "")
  for (key in setdiff(names(facts$about), "title")) {
    cat(key, ": ", facts$about[[key]], "\n", sep = "")
  }
  epsilon <- format(.fraction(facts$epsilon), digits = 15)
  cat("privacy loss (epsilon) for one individual: ", epsilon, "\n", sep = "")
  cat("each individual counts ", .limits(facts), "\n", sep = "")
  if (!is.null(facts$rounded)) {
    kind <- if (is.character(facts$rounded)) "the " else "multiples of "
    cat("counts are rounded to ", kind, facts$rounded, "\n", sep = "")
  }
  cat("id: ", facts$id, ", the same in every file of this release\n", sep = "")
  for (id in facts$corrects) {
    cat("use it instead of the release with the id ", id, "\n", sep = "")
  }
  invisible(facts)
}

plot.geomdp <- function(x, ...) {
  facts <- .facts(x)
  if (is.null(x$lower)) stop("the largest by name have no counts to draw")
  columns <- names(x)[seq_len(sum(.widths(facts)))]
  levels <- lapply(columns, function(column) labels_geomdp(x, column))
  counts <- pmax(x[[length(levels) + 1]], .least(facts))
  places <- rev(seq_along(counts))
  # A table without columns has one count.
  labels <- if (length(levels)) do.call(paste, c(levels, sep = ", ")) else names(x)[1]
  dotchart(rev(counts),
    labels = rev(labels),
    xlim = range(0, counts, x$lower, x$upper, finite = TRUE), ...
  )
  sides <- par("usr")
  segments(pmax(x$lower, sides[1]), places, pmin(x$upper, sides[2]), places)
}
