/** Whose money it is: the profile and the accounts, which every place needs before it asks for anything else. */
import { useRead } from "./api.js";
import { offers } from "./place.js";
import { useMemo } from "./ui.js";

/**
 * `{profile, accounts, ids, byId}` once both are there: `accounts` are those that are shown, `ids` their ids as the
 * interface takes them, `byId` all accounts, hidden ones too, since their bookings can still be opened.
 */
export function usePerson() {
  const told = useRead(offers("GET /profile") ? "/profile" : null);
  const accounts = useRead("/accounts");
  const profile = offers("GET /profile") ? told : { ...told, data: accounts.data && assumed(accounts.data.accounts) };
  const data = useMemo(() => {
    if (!profile.data || !accounts.data) return null;
    const all = accounts.data.accounts;
    const shown = all.filter((account) => !account.isHidden);
    return {
      profile: profile.data,
      accounts: shown,
      all,
      ids: shown.map(({ id }) => id).join(","),
      byId: new Map(all.map((account) => [account.id, account])),
    };
  }, [told.data, accounts.data]);
  const again = () => {
    profile.again();
    accounts.again();
  };
  return { data, error: profile.error ?? accounts.error, again };
}

function assumed(accounts) {
  const currencies = new Set(accounts.map(({ currency }) => currency));
  return { name: "", homeCurrency: currencies.size === 1 ? [...currencies][0] : "EUR", today: new Date().toISOString().slice(0, 10) };
}
