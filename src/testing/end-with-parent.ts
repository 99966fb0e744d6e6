/** Loaded into a command that a test starts: the command ends when the test's process ends, even if that process is killed. */
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
