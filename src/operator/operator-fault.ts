/** The operator asked for something that can't be done. Only the message is shown. */
export class OperatorFault extends Error {}
