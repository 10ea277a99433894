# gnuplot 002_figure_7.gp makes 002_figure_7.svg.
set encoding utf8
set terminal svg size 860,420 noenhanced font 'sans,11' background 'white'
set output '002_figure_7.svg'
set datafile missing '?'
set grid
set logscale y
set linetype 5 lc rgb 'dark-goldenrod'
set linetype 9 lc rgb 'gray40'
set style fill solid 0.8
set boxwidth 0.9
set xtics rotate by -25
set key outside right top
set title "Figure 7: the same messages in seven orders"
set format y '%.0s %cbit/s'
plot '002_figure_7.dat' using 2:xtic(1) with histogram lt 1 title "CPU, all threads, as ordered", \
  '002_figure_7.dat' using 3:xtic(1) with histogram lt 2 title "CPU, all threads, Nacre's order", \
  '002_figure_7.dat' using 4:xtic(1) with histogram lt 3 title "plain code (tables), one thread", \
  '002_figure_7.dat' using 5:xtic(1) with histogram lt 4 title "plain code (tables), all threads", \
  '002_figure_7.dat' using 6:xtic(1) with histogram lt 5 title "library, one thread", \
  '002_figure_7.dat' using 7:xtic(1) with histogram lt 6 title "library, all threads", \
  '002_figure_7.dat' using 8:xtic(1) with histogram lt 7 title "GPU kernels", \
  '002_figure_7.dat' using 9:xtic(1) with histogram lt 8 title "GPU with copies"
