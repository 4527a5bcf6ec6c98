# cv.glmnet on data in binary files; the fit alone is timed, after one on a few rows.
# Rscript fit.R FOLDER ROWS COLUMNS PENALTIES THREADS
suppressMessages(library(glmnet))
given <- commandArgs(trailingOnly = TRUE)
folder <- given[1]
n <- as.integer(given[2])
m <- as.integer(given[3])
penalties <- as.integer(given[4])
threads <- as.integer(given[5])
numbers <- function(part, count) readBin(file.path(folder, paste0(part, ".bin")), "double", count)
X <- matrix(numbers("X", n * m), n, m)
y <- numbers("y", n)
fold <- as.integer(numbers("fold", n))
parallel <- threads > 1 && requireNamespace("doParallel", quietly = TRUE)
if (parallel) doParallel::registerDoParallel(cores = threads)

short <- FALSE
fit <- function(X, y, fold) {
  withCallingHandlers(
    cv.glmnet(X, y, foldid = fold, nlambda = penalties, standardize = FALSE, parallel = parallel,
              type.gaussian = if (nrow(X) > ncol(X)) "covariance" else "naive"),
    warning = function(w) {
      if (grepl("onvergence", conditionMessage(w))) short <<- TRUE
      invokeRestart("muffleWarning")
    })
}
some <- seq(1, n, length.out = min(n, 200))
invisible(fit(X[some, 1:min(m, 20)], y[some], rep(1:10, length.out = length(some))))
short <- FALSE
began <- as.numeric(Sys.time())
model <- fit(X, y, fold)
seconds <- as.numeric(Sys.time()) - began
writeBin(as.numeric(coef(model, s = "lambda.min")), file.path(folder, "coef.bin"))
cat(sprintf('{"seconds": %.6f, "converged": %s}\n', seconds, if (short) "false" else "true"),
    file = file.path(folder, "said.json"))
