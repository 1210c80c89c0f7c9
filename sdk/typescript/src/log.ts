// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// The log of an extension.

/** Logger takes the log lines of an extension. Those of console, pino and winston are examples. */
export interface Logger {
  debug(message: string, fields?: object): void;
  info(message: string, fields?: object): void;
  error(message: string, fields?: object): void;
}

/** jsonLines writes one JSON object for each line to stderr, without those of level debug. */
export const jsonLines: Logger = {
  debug() {},
  info: (message, fields) => write("info", message, fields),
  error: (message, fields) => write("error", message, fields),
};

function write(level: string, message: string, fields: object | undefined): void {
  process.stderr.write(JSON.stringify({ time: new Date().toISOString(), level, message, ...fields }) + "\n");
}

/** withFields returns a logger that adds fields to each line. */
export function withFields(logger: Logger, fields: object): Logger {
  return {
    debug: (message, more) => logger.debug(message, { ...fields, ...more }),
    info: (message, more) => logger.info(message, { ...fields, ...more }),
    error: (message, more) => logger.error(message, { ...fields, ...more }),
  };
}
