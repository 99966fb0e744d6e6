/**
 * What each status of a paid call means for the caller's money. `/llms.txt` and the pages show these sentences; docs/reference/errors.md
 * has them too. Backticks mark names.
 */
export const STATUS_MEANINGS: readonly [status: string, meaning: string][] = [
  [
    '200',
    'You have the answer, and you paid once (likewise with 201, 202, 203 or 204, where the operation declares it). `PAYMENT-RESPONSE` is the receipt, with the transaction on chain. The same payment with the same call gets the answer again, without a second charge.',
  ],
  [
    '400',
    'The call is invalid, and `error` says why. This call did not use the payment: correct it and send it with the same payment.',
  ],
  [
    '402',
    'Not paid. If you sent no payment, this is the price. If you sent one, `error` says why it does not buy this call: sign a new one.',
  ],
  [
    '502',
    'The work failed and you were not charged. But if there is a receipt of success, the call is paid and its answer is owed: send the same payment again.',
  ],
  [
    '503',
    'Not now. Wait as long as `Retry-After` says and send the same payment again, never a new one. If there is a receipt of success, the call is paid and in progress.',
  ],
];
