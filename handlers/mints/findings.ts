/**
 * The most severe first. `critical`: holders cannot trade now, or a source calls the token suspicious. `high`: somebody can take, stop or
 * dilute everything at any moment, or nothing supports the token's value. `medium`: a sign of risk, or a part that could not be checked.
 * `low`: informational.
 */
const SEVERITIES = ['critical', 'high', 'medium', 'low'] as const;
export type Severity = (typeof SEVERITIES)[number];

/** One warning: a code for programs, a sentence for people. */
export type Finding = { code: string; severity: Severity; sentence: string };

/** One line of a table of findings. `says`: the sentence; undefined where the finding does not apply. */
export type Row<Facts> = {
  code: string;
  severity: Severity;
  says: (facts: Facts) => string | undefined;
};

/** The findings of a table that apply, in the order of the table. */
export function findingsOf<Facts>(table: readonly Row<Facts>[], facts: Facts): Finding[] {
  return table.flatMap(({ code, severity, says }) => {
    const sentence = says(facts);
    return sentence === undefined ? [] : [{ code, severity, sentence }];
  });
}

/** The same findings, most severe first. */
export function mostSevereFirst(findings: readonly Finding[]): Finding[] {
  return SEVERITIES.flatMap(severity => findings.filter(finding => finding.severity === severity));
}
