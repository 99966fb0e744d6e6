/** The path of the settings for Schemathesis, whose command `st` reads `schemathesis.toml` in its own folder. */
export const SCHEMATHESIS_PATH = '/schemathesis.toml';

/**
 * Settings that Schemathesis can't read from an OpenAPI document. Two of its checks do not know prices: for them a 402 is neither an
 * acceptance nor a rejection. The other checks keep their defaults.
 */
export const SCHEMATHESIS_CONFIG = `# For Schemathesis 4, calling this API without payments. Save it as schemathesis.toml in the folder in which st runs.
# After many refusals, Schemathesis would warn, wrongly, that credentials are missing.
warnings = false

[checks.positive_data_acceptance]
# A valid call without a payment gets its price.
expected-statuses = ["2xx", "3xx", 402]

[checks.negative_data_rejection]
# The payment is read before the body, so an invalid call without a payment gets the price, too.
expected-statuses = [400, 402, 404, 405, 406, 415]

[[operations]]
# No answer is kept under a key that was made up.
include-by = "/x-answers == true"

[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", "3xx", 404]
`;
