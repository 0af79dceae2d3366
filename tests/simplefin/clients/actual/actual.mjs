// Actual as a person sets it up: its own server, its own engine, a budget, and our accounts linked to it by SimpleFIN.
// actual.mjs TOKEN SERVER_URL FOLDER: prints a line of JSON after each step, and goes on for each line that it reads.
import { mkdirSync } from 'node:fs';
import { createInterface } from 'node:readline';
import * as api from '@actual-app/api';

const [token, serverURL, dataDir] = process.argv.slice(2);
const password = 'a password of Actual';
mkdirSync(dataDir, { recursive: true });
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const say = value => process.stdout.write(`\n@${JSON.stringify(value)}\n`);
console.log = console.info = console.warn = console.debug = () => {};

const bootstrapped = await fetch(`${serverURL}/account/bootstrap`, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ password }),
});
if (!bootstrapped.ok) throw new Error(`the server of Actual: ${bootstrapped.status}`);

const engine = await api.init({ dataDir, serverURL, password });
await engine.send('create-budget', { budgetName: 'Household', avoidUpload: true });
await engine.send('secret-set', { name: 'simplefin_token', value: token });
const told = await engine.send('simplefin-accounts');
for (const account of told.accounts) {
  await engine.send('simplefin-accounts-link', {
    externalAccount: {
      account_id: account.id,
      name: account.name,
      institution: account.org.name,
      orgDomain: account.org.domain,
      orgId: account.org.id,
      balance: account.balance,
    },
  });
}

async function state() {
  const found = {};
  for (const account of await engine.send('accounts-get')) {
    const rows = await api.getTransactions(account.id, '1970-01-01', '2100-01-01');
    found[account.account_id] = {
      name: account.name,
      bank: account.bankName,
      balance: await api.getAccountBalance(account.id),
      rows: rows.filter(row => row.imported_id).map(row => [row.imported_id, row.date, row.amount, row.cleared]),
      status: account.bank_sync_status,
    };
  }
  return found;
}

say({ errors: told.errors ?? told.errlist ?? [], accounts: await state() });
for (let sync = 0; sync < 2; sync++) {
  await lines.next();
  const ids = (await engine.send('accounts-get')).map(account => account.id);
  const results = await engine.send('simplefin-batch-sync', { ids });
  say({
    added: results.flatMap(each => each.res.newTransactions).length,
    errors: results.flatMap(each => each.res.errors).map(error => error.message),
    accounts: await state(),
  });
}
await api.shutdown();
process.exit(0);
