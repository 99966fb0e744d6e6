/** Loaded into a command that a test started: it ends when the process of the test has ended, even if that was killed. */
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
