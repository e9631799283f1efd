// No module, so that it runs if one of them did not come: a browser asks for each once, and draws nothing without it.
'use strict';
(() => {
  const HAS_RELOADED = 'has-reloaded';
  const isMain = element => element.tagName === 'SCRIPT' && element.type === 'module';
  // Once: not if the browser keeps nothing for the page, which could not know then that it has been loaded before.
  const mayReload = () => {
    try {
      if (sessionStorage.getItem(HAS_RELOADED)) return false;
      sessionStorage.setItem(HAS_RELOADED, 'yes');
      return true;
    } catch { return false; }
  };
  const tell = () => {
    document.getElementById('unloaded').hidden = false;
    document.getElementById('reload').addEventListener('click', () => location.reload());
  };
  document.addEventListener('error', event => {
    if (!isMain(event.target)) return;
    if (mayReload()) location.reload();
    else if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', tell);
    else tell();
  }, true);
  document.addEventListener('load', event => {
    if (!isMain(event.target)) return;
    try { sessionStorage.removeItem(HAS_RELOADED); } catch { /* nothing is kept */ }
  }, true);
})();
