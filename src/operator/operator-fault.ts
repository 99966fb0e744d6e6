/** What the operator asked for can't be done. Only the message is shown. */
export class OperatorFault extends Error {}
