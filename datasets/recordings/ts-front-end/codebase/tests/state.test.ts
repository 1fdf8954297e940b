import { loadLoans, giveBack } from "../src/state/effects.js";
import { overdueLoans, visibleLoans } from "../src/state/selectors.js";
import { equal, test } from "./kit.js";
import { TODAY, world } from "./world.js";

test("loans of a member in a shed", async () => {
  const { store } = await world();
  equal(store.get().loans.order.length > 3, true);
  equal(store.get().loans.loading, false);
});

test("the filters", async () => {
  const { store } = await world();
  const all = visibleLoans(store.get(), TODAY).length;
  store.dispatch({ type: "loans/filterSet", filter: "overdue" });
  equal(visibleLoans(store.get(), TODAY).every((loan) => loan.dueOn < TODAY), true);
  equal(visibleLoans(store.get(), TODAY).length < all, true);
});

test("giving back shows a notice", async () => {
  const { store, api } = await world();
  const id = visibleLoans(store.get(), TODAY)[0].id;
  await giveBack(store, api, id);
  equal(store.get().loans.byId[id].status, "returned");
  equal(store.get().notices.map((notice) => notice.key), ["return.done"]);
});

test("an older answer does not replace a newer one", async () => {
  const { store } = await world();
  store.dispatch({ type: "loans/received", loans: [], requestId: 0 });
  equal(store.get().loans.order.length > 3, true);
});

test("loans of another shed", async () => {
  const { store, api } = await world();
  await loadLoans(store, api, "shd-04");
  equal(store.get().loans.shed, "shd-04");
  equal(overdueLoans(store.get(), "2025-01-01").length, 0);
});
