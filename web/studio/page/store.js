// The run that is kept in the browser's storage: one, the last.
const opened = () => new Promise((resolve, reject) => {
  const request = indexedDB.open("querent-studio", 1);
  request.onupgradeneeded = () => request.result.createObjectStore("runs");
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

const done = async (mode, work) => {
  const base = await opened();
  try {
    return await new Promise((resolve, reject) => {
      const transaction = base.transaction("runs", mode);
      const request = work(transaction.objectStore("runs"));
      transaction.oncomplete = () => resolve(request.result);
      transaction.onerror = transaction.onabort = () => reject(transaction.error);
    });
  } finally {
    base.close();
  }
};

export const keep = (run) => done("readwrite", (runs) => runs.put(run, "last"));
export const kept = () => done("readonly", (runs) => runs.get("last"));
export const forget = () => done("readwrite", (runs) => runs.delete("last"));
