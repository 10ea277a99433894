# gnuplot 002_figure_1.gp makes 002_figure_1.svg.
set encoding utf8
set terminal svg size 860,420 noenhanced font 'sans,11' background 'white'
set output '002_figure_1.svg'
set datafile missing '?'
set grid
set logscale y
set linetype 5 lc rgb 'dark-goldenrod'
set linetype 9 lc rgb 'gray40'
set logscale x 2
set xlabel "threads"
set format x '%.0f'
set xtics rotate by -40
set key outside right top
set title "Figure 1: AES-CTR by the number of threads, a block each"
set format y '%.0s %cbit/s'
plot '002_figure_1.dat' using 1:3 with linespoints lt 1 title "paper's way, kernel", \
  '002_figure_1.dat' using 1:4 with linespoints lt 2 title "paper's way with copies", \
  '002_figure_1.dat' using 1:5 with linespoints lt 3 title "plain code (tables), one thread", \
  '002_figure_1.dat' using 1:6 with linespoints lt 4 title "plain code (tables), all threads", \
  '002_figure_1.dat' using 1:7 with linespoints lt 5 title "library, one thread", \
  '002_figure_1.dat' using 1:8 with linespoints lt 6 title "library, all threads", \
  '002_figure_1.dat' using 1:9 with linespoints lt 7 title "GPU kernels", \
  '002_figure_1.dat' using 1:10 with linespoints lt 8 title "GPU with copies"
